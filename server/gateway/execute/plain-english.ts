/**
 * Decides whether a sentence is plainly English. The rules for negations, conditions and orders know only English, so a sentence
 * in another language must not pass just because they don't recognize its words.
 */

import type { StoredTool } from '../../catalog/stored-tools.ts'
import { wordSet } from '../../lib/word-set.ts'
import { AMBIGUOUS_WORDS, EFFECT_WORDS } from '../../policy/effect-words.ts'
import { meansEffect, wordsOf } from '../../policy/plain-reader.ts'
import { STOP_WORDS, WEAK_WORDS } from '../../routing/words/stop-words.ts'

/** Common short words of German, French, Spanish, Italian, Portuguese and Dutch that are not English words. */
const FOREIGN =
  wordSet(`nicht kein keine keinen niemals das der den dem und oder wenn falls bitte ist sind mir alle zeige zeig liste lies lösche auf mit für
  ne pas le les du des et ou si quand jamais aucun une sur avec dans est sont affiche montre lis supprime efface
  el los las una unos y cuando nunca nada ningún del por para con en muestra lee leas borra elimina
  il lo gli dei della quando mai nessun non leggi leggere mostra cancella elenca
  não nao um uma os quando nunca leia apague liste exiba
  het een niet geen als wanneer nooit lees toon verwijder bestand van voor met`)
const KNOWN_VERBS = wordSet('get list read search find describe view count lookup retrieve return look browse query')
/** Share of the words, names excluded, that must be known. */
const MIN_KNOWN = 0.34

export function isPlainEnglish(sentence: string, tool: Pick<StoredTool, 'name' | 'description'>): boolean {
  const words = sentence.match(/[\p{L}\p{M}]+/gu) ?? []
  const own = new Set([...wordsOf(tool.name), ...wordsOf(tool.description.slice(0, 2000))])
  let counted = 0
  let known = 0
  for (const [at, word] of words.entries()) {
    if (!/^\p{Script=Latin}+$/u.test(word)) return false
    const lower = word.toLowerCase()
    const isName = at > 0 && word !== lower
    if (isName) continue
    if (FOREIGN.has(lower) || (at > 0 && !/^[a-z]+$/.test(lower))) return false
    counted++
    if (isKnown(lower, own)) known++
  }
  return counted === 0 || known / counted >= MIN_KNOWN
}

function isKnown(word: string, own: ReadonlySet<string>): boolean {
  if (STOP_WORDS.has(word) || WEAK_WORDS.has(word) || own.has(word)) return true
  return [KNOWN_VERBS, EFFECT_WORDS, AMBIGUOUS_WORDS, own].some((known) => meansEffect(word, known))
}
