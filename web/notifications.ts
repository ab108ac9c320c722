/** The browser's notifications. Some phones have them for service workers only, which shows when the first one is made. */
import { ref } from 'vue'
import { recall, remember } from './remembered.ts'

export const canNotify = ref('Notification' in window)

export const notificationsWanted = () =>
  canNotify.value && recall('notify') === 'yes' && Notification.permission === 'granted'

/** Turns notifications on, with the first one to show it, or off; resolves to what they are then. */
export async function wantNotifications(wanted: boolean): Promise<boolean> {
  const isOn =
    wanted &&
    (await Notification.requestPermission()) === 'granted' &&
    notify('You will be notified when a call needs your approval.', 'first')
  remember('notify', isOn ? 'yes' : null)
  return isOn
}

/** One with the same tag takes the place of the one before it. */
export function notify(body: string, tag: string): boolean {
  try {
    const shown = new Notification('MCP Orchestrator', { body, tag })
    shown.onclick = () => {
      window.focus()
      shown.close()
    }
    return true
  } catch {
    canNotify.value = false
    return false
  }
}
