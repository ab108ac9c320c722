import { type Directive, type WatchHandle, watchEffect } from 'vue'
import { useNotices } from '../stores/notices.ts'
import { useSession } from '../stores/session.ts'

const NO_CONNECTION = 'Not possible now: no connection to the server.'
const watches = new WeakMap<Element, WatchHandle>()

/** Stops a click before the button's own listener gets it. */
function refuse(event: Event): void {
  if (!useSession().isLost) return
  event.preventDefault()
  event.stopImmediatePropagation()
  useNotices().showOffline(NO_CONNECTION)
}

/** For buttons that need the server: without a connection they look switched off and say why. */
export const vOnline: Directive<HTMLElement> = {
  created(button) {
    button.addEventListener('click', refuse, { capture: true })
  },
  mounted(button) {
    const session = useSession()
    const title = button.title
    let isOff = false
    watches.set(
      button,
      watchEffect(() => {
        button.title = session.isLost ? NO_CONNECTION : title
        if (session.isLost) button.setAttribute('aria-disabled', 'true')
        // The button may be switched off for a reason of its own.
        else if (isOff) button.removeAttribute('aria-disabled')
        isOff = session.isLost
      })
    )
  },
  unmounted(button) {
    watches.get(button)?.()
  }
}
