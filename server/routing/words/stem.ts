/** Porter's stemmer (1980): "translates", "translating" and "translation" get the same stem. */

const C = '[^aeiou][^aeiouy]*'
const V = '[aeiouy][aeiou]*'
const MEASURE_ABOVE_0 = new RegExp(`^(${C})?${V}${C}`)
const MEASURE_IS_1 = new RegExp(`^(${C})?${V}${C}(${V})?$`)
const MEASURE_ABOVE_1 = new RegExp(`^(${C})?${V}${C}${V}${C}`)
const HAS_VOWEL = new RegExp(`^(${C})?[aeiouy]`)
const SHORT_END = new RegExp(`^${C}[aeiouy][^aeiouwxy]$`)

const STEP_2: readonly (readonly [string, string])[] = [
  ['ational', 'ate'],
  ['tional', 'tion'],
  ['ization', 'ize'],
  ['iveness', 'ive'],
  ['fulness', 'ful'],
  ['ousness', 'ous'],
  ['biliti', 'ble'],
  ['ation', 'ate'],
  ['alism', 'al'],
  ['aliti', 'al'],
  ['iviti', 'ive'],
  ['entli', 'ent'],
  ['ousli', 'ous'],
  ['enci', 'ence'],
  ['anci', 'ance'],
  ['izer', 'ize'],
  ['ator', 'ate'],
  ['alli', 'al'],
  ['bli', 'ble'],
  ['eli', 'e'],
  ['logi', 'log']
]
const STEP_3: readonly (readonly [string, string])[] = [
  ['icate', 'ic'],
  ['ative', ''],
  ['alize', 'al'],
  ['iciti', 'ic'],
  ['ical', 'ic'],
  ['ness', ''],
  ['ful', '']
]
const STEP_4 = /^(.+?)(ement|ance|ence|able|ible|ment|ant|ent|ism|ate|iti|ous|ive|ize|ion|al|er|ic|ou)$/

function replaceSuffix(word: string, table: readonly (readonly [string, string])[]): string {
  for (const [suffix, replacement] of table) {
    if (!word.endsWith(suffix)) continue
    const base = word.slice(0, -suffix.length)
    return MEASURE_ABOVE_0.test(base) ? base + replacement : word
  }
  return word
}

function dropPlural(word: string): string {
  if (word.endsWith('sses') || word.endsWith('ies')) return word.slice(0, -2)
  return word.endsWith('s') && !word.endsWith('ss') ? word.slice(0, -1) : word
}

function dropPastAndGerund(word: string): string {
  if (word.endsWith('eed')) return MEASURE_ABOVE_0.test(word.slice(0, -3)) ? word.slice(0, -1) : word
  const base = word.endsWith('ed') ? word.slice(0, -2) : word.endsWith('ing') ? word.slice(0, -3) : undefined
  if (base === undefined || !HAS_VOWEL.test(base)) return word
  if (/(at|bl|iz)$/.test(base)) return `${base}e`
  if (/([^aeiouylsz])\1$/.test(base)) return base.slice(0, -1)
  return SHORT_END.test(base) ? `${base}e` : base
}

function dropLongSuffix(word: string): string {
  const match = STEP_4.exec(word)
  if (!match) return word
  const [, base = '', suffix = ''] = match
  if (suffix === 'ion' && !/[st]$/.test(base)) return word
  return MEASURE_ABOVE_1.test(base) ? base : word
}

function tidyEnd(word: string): string {
  let result = word
  if (result.endsWith('e')) {
    const base = result.slice(0, -1)
    if (MEASURE_ABOVE_1.test(base) || (MEASURE_IS_1.test(base) && !SHORT_END.test(base))) result = base
  }
  return result.endsWith('ll') && MEASURE_ABOVE_1.test(result) ? result.slice(0, -1) : result
}

/** Leaves everything unchanged except lower-case ASCII words of more than two letters. */
export function stem(word: string): string {
  if (word.length < 3 || !/^[a-z]+$/.test(word)) return word
  let result = dropPastAndGerund(dropPlural(word))
  if (result.endsWith('y') && HAS_VOWEL.test(result.slice(0, -1))) result = `${result.slice(0, -1)}i`
  result = replaceSuffix(replaceSuffix(result, STEP_2), STEP_3)
  return tidyEnd(dropLongSuffix(result))
}
