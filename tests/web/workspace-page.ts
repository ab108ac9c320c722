/** What a person does on the page, in their words. */
import type { Locator, Page } from 'playwright-core'

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
    return this.page.getByRole('region', { name: 'Output', exact: true })
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
