/** English function words, and polite phrases that say nothing about the request itself. */
import { wordSet } from '../../lib/word-set.ts'

export const STOP_WORDS = wordSet(`
  a an the this that these those such some any each every all both either neither no nor not only own same so than too very
  i me my mine myself we us our ours ourselves you your yours yourself he him his himself she her hers herself it its itself
  they them their theirs themselves who whom whose which what
  am is are was were be been being do does did doing done have has had having will would shall should can could may might must
  ought cannot dont doesnt didnt isnt arent wasnt werent wont wouldnt shouldnt couldnt cant im ive id ill youre youve hes shes
  theyre theyve weve were thats whats lets theres heres
  and or but if because as until while of at by for with about against between into through during before after above below
  to from up down in out on off over under again further then once here there when where why how
  s t d ll m re ve don doesn didn isn aren wasn weren won wouldn shouldn couldn
  also just even still yet already ever never always often maybe perhaps really quite rather pretty much many more most
  please thanks thank hello hi hey ok okay yes well sure kindly
  upon onto within without across along among around toward towards per via etc eg ie
  something anything everything nothing someone anyone everyone somebody anybody thing things stuff one ones
  else instead otherwise however therefore thus hence though although since whether unless
`)

/** Words with little meaning: they count, but less than their rarity in a small index suggests. */
export const WEAK_WORDS = wordSet(`
  want wants wanted need needs needed like likes would love looking help helps helping helpful assist assistance assisting
  tell let know knowing give gives giving given show showing make makes making take taking see seeing use uses using used
  get gets getting got go going come think try trying feel feeling able possible way ways best good great new specific
  particular certain different various several few lot lots bit kind sort type types example examples
  provide provides provided providing recommend suggest suggestion suggestions suggested information info detail details
  available currently current today now right next last first recently recent latest soon time day days week month year
  curious interested wondering wonder planning plan plans hoping hope excited working work works
  additionally furthermore moreover finally lastly besides together related including include includes based regarding
  my friend friends family company colleague colleagues people person user users
  tool tools api apis plugin plugins app application service services server function functions feature features option options
  me us have hear ask asking question questions answer request requests result results return returns returned
  allow allows enable enables support supports access system
`)
