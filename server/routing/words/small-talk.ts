import { wordSet } from '../../lib/word-set.ts'
import { words } from './words.ts'

const SMALL_TALK =
  wordSet(`hello hi hey howdy greetings dear good morning afternoon evening night day bye goodbye cheers thanks thank thx you your are youre we i im me
  am is it its was that thats this so very much really a an the and or to too for of at all again there here now well fine great nice cool
  awesome perfect amazing super best wow lol haha ok okay yes yeah yep no nope sure right sorry welcome please how who what doing today tomorrow
  later soon see ya tired happy sad bored busy back friend friends everyone everybody team sir job work done
  whats hows do can made name called up going help feel feeling mean`)
const MOST = 12

/** Greetings, thanks and remarks: nothing that a tool could do. */
export function isSmallTalk(request: string): boolean {
  const found = words(request.replace(/['\u2019]/g, ''), 'prose')
  return found.length > 0 && found.length <= MOST && found.every((word) => SMALL_TALK.has(word))
}
