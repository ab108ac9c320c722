/** The actions of a person on the page, with names that a person would use. */
import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'

export class WorkspacePage {
  readonly page: Page
  constructor(page: Page) {
    this.page = page
  }

  get composer(): Locator {
    return this.page.getByRole('textbox', { name: 'Message' })
  }
  get cards(): Locator {
    return this.page.getByRole('region', { name: /^Approval needed/ })
  }
  /** Output of calls, live and stored. */
  get outputs(): Locator {
    return this.page.getByRole('group', { name: 'Output', exact: true })
  }
  button(name: string | RegExp): Locator {
    return this.page.getByRole('button', { name })
  }

  /** As a person reads it, line by line. */
  async read(place: Locator): Promise<string> {
    return (await place.allInnerTexts()).join('\n')
  }
  async say(text: string): Promise<void> {
    await this.composer.fill(text)
    await this.composer.press('Enter')
  }
  async approve(): Promise<void> {
    await this.button(/^Approve$/)
      .first()
      .click()
  }
  /** The card that has the keyboard: A chooses Approve, and Enter counts a moment later. */
  async approveByKeyboard(): Promise<void> {
    const card = this.page.locator('.decision-card:focus')
    await card.locator('[data-approve][aria-disabled=false]').waitFor()
    await this.page.keyboard.press('a')
    const button = this.page.locator('[data-approve]:focus')
    await button.waitFor()
    const pressed = async () => {
      await this.page.keyboard.press('Enter')
      return button.count()
    }
    await expect.poll(pressed, { interval: 500 }).toBe(0)
  }
  /** Where calls wait: Escape asks, once the message has been sent for a second, and the button of the dialog stops. */
  async stopByKeyboard(): Promise<void> {
    const stop = this.page
      .getByRole('dialog', { name: 'Stop this turn?' })
      .getByRole('button', { name: 'Stop the turn' })
    const asked = async () => {
      if ((await stop.count()) === 0) await this.page.keyboard.press('Escape')
      return stop.count()
    }
    await expect.poll(asked, { interval: 500 }).toBe(1)
    await stop.and(this.page.locator('[aria-disabled=false]')).waitFor()
    await stop.focus()
    await this.page.keyboard.press('Enter')
  }
  /** Enter in the reason of a rejection counts once the form has been there for a moment. */
  async enterReason(): Promise<void> {
    const field = this.page.getByRole('textbox', { name: /Reason/ })
    const pressed = async () => {
      await this.page.keyboard.press('Enter')
      return field.count()
    }
    await expect.poll(pressed, { interval: 500 }).toBe(0)
  }
  /** In the list of all calls that “Approve all” is about to run. */
  async approveListed(): Promise<void> {
    await this.button(/^Approve (these|this)/)
      .and(this.page.locator('[aria-disabled=false]'))
      .click()
  }
  /** In the dialog that “Always allow” opens. */
  async alwaysAllow(): Promise<void> {
    await this.page
      .getByRole('dialog', { name: /^Always allow/ })
      .getByRole('button', { name: 'Always allow' })
      .and(this.page.locator('[aria-disabled=false]'))
      .click()
  }
  /** A turn has ended: nothing waits, and nothing can be stopped. */
  async quiet(): Promise<void> {
    await this.button(/^Stop/).first().waitFor({ state: 'hidden' })
    await this.cards.first().waitFor({ state: 'hidden' })
  }
  async ask(text: string): Promise<void> {
    await this.say(text)
    await this.cards.first().waitFor()
  }
  sessionId(): string {
    return /#\/s\/(.+)$/.exec(this.page.url())?.[1] ?? ''
  }
}
