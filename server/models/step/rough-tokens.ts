const CHARACTERS_PER_TOKEN = 4

/** An estimate for models that don't count tokens. */
export function roughTokens(text: string): number {
  return Math.ceil(text.length / CHARACTERS_PER_TOKEN)
}
