import { type Component, shallowRef } from 'vue'

/** How calls are shown. It is loaded after the page can be used; an empty session does not need it. */
export const callView = shallowRef<Component>()

/** If it can't be loaded, missing-parts.ts tells the person. */
export async function loadCallView(): Promise<void> {
  if (callView.value) return
  const part = await import('./CallView.vue').catch(() => null)
  if (part) callView.value = part.default
}
