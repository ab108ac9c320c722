import { shallowRef } from 'vue'

/** The open modal dialogs, the top one last. Everything outside the top one is inert: toasts and announcements must be inside it. */
export const openDialogs = shallowRef<readonly HTMLElement[]>([])
