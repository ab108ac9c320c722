/** The browser's notifications. Some phones allow them in service workers only, which is known only when the first one fails. */
import { ref } from 'vue'
import { recall, remember } from './remembered.ts'

export const canNotify = ref('Notification' in window)

export const notificationsWanted = () =>
  canNotify.value && recall('notify') === 'yes' && Notification.permission === 'granted'

/** Turns notifications on, which shows a first one, or off. Returns whether they are on now. */
export async function wantNotifications(wanted: boolean): Promise<boolean> {
  const isOn =
    wanted &&
    (await Notification.requestPermission()) === 'granted' &&
    notify('You will be notified when something waits for you, or an answer is complete.', 'first')
  remember('notify', isOn ? 'yes' : null)
  return isOn
}

/** A notification replaces an earlier one with the same tag. */
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
