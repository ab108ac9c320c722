/** Things that look like a key of a known vendor, also when half masked by the vendor itself. */
const KEY_SHAPES = /\b(?:sk-|sk_|AIza|gsk_|xai-|hf_|Bearer\s+)[\w*.\-…]{8,}/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: removing them is the purpose
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]+/g
const SHORTEST_SECRET = 4

/** Text of a provider as it may stand in a message or a log: one line, bounded, without any key. */
export function cleanText(text: string, secrets: readonly string[], maxLength = 300): string {
  let clean = text.slice(0, 20_000)
  for (const secret of secrets) {
    if (secret.length >= SHORTEST_SECRET) clean = clean.replaceAll(secret, '[key]')
  }
  clean = clean.replace(KEY_SHAPES, '[key]').replace(UNPRINTABLE, ' ').replace(/ {2,}/g, ' ').trim()
  return clean.length > maxLength ? `${clean.slice(0, maxLength - 1)}…` : clean
}
