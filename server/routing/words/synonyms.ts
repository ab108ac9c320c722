/**
 * A small thesaurus of general English, so that a request need not use the words of a tool's description. `SAME`: nearly
 * interchangeable words. `VERBS`: the verb classes of tool names. `TOPICS`: words on one subject, which count least. A word may
 * be in several lines; a capital marks a proper name.
 */
import { termOf } from './words.ts'

const SAME = `
repo repository; db database; doc docs document documentation; pic picture image photo photograph; mail email; past history previous earlier;
folder directory; dir directory; config configuration setting settings preferences; app application; info information details;
url link website webpage page site web; website site domain; bug issue defect; ticket issue; pr pull; msg message; dm message; chat conversation message;
auth authentication authorization login signin; account profile user; user member person people; contact person; phone telephone mobile;
movie film; tv television; show series episode; song track music; video clip; car vehicle automobile auto; flight airline plane airfare;
hotel accommodation lodging stay; trip travel journey vacation holiday tour; meeting appointment event; calendar schedule agenda;
task todo reminder; note notes memo; job career employment vacancy position; resume cv; company business firm organization; shop store retailer;
product item goods merchandise; price cost quote rate; cheap affordable budget discount; deal discount coupon promo offer; currency money exchange forex;
stock share equity ticker; crypto cryptocurrency Bitcoin coin token; weather forecast climate; temperature weather; location place address position;
map location geographic; city town place; country nation; language locale; error exception failure; log logs history; metric metrics statistics stats analytics;
graph chart plot diagram; table spreadsheet sheet; row record entry; column field; cell spreadsheet; password secret credential; key token;
image graphic artwork illustration; logo icon brand; text content; summary overview abstract digest; paper article publication research journal; book novel;
news headline article; recipe cooking dish meal; food meal dish nutrition; diet nutrition calorie; exercise workout fitness training; health medical;
doctor physician medical; medicine drug medication; lawyer attorney legal; law legal; house home property estate; apartment flat rental property; loan mortgage credit;
course class lesson tutorial; student learner; teacher tutor instructor; child children kid kids; quiz trivia question; game play; joke humor funny pun;
gift present; horoscope astrology zodiac; dream sleep; quote quotation saying; poem poetry verse; story tale narrative; lyrics song;
code program source script; function method; library package dependency module; container Docker; cluster Kubernetes k8s; vm machine instance; server host;
commit revision; branch branches; change edit modification diff; difference diff comparison; version release revision; file document; attachment file;
audio sound voice speech; speech voice; subtitle caption transcript; transcript transcription; screenshot capture; browser web page; tab page; button element;
node entity vertex; relation relationship link edge connection; fact observation; knowledge graph; memory remember knowledge; timezone zone; clock time; date day calendar;
distance length; coordinate coordinates latitude longitude; route direction directions navigation; traffic transit transport; train railway rail; bus transit;
restaurant dining eatery; dinner restaurant meal; wine drink beverage; coffee drink; team club squad; player athlete; football soccer; match game fixture; league tournament competition;
score result standing; tweet Twitter post; post article blog; comment reply feedback; review rating feedback; follower subscriber; friend contact; group team; channel room;
payment transaction charge; invoice bill receipt; order purchase; shipment delivery shipping package parcel; customer client; subscription plan; refund return; balance account fund;
tax taxes; salary wage pay; insurance coverage; investment portfolio finance; company corporation; employee staff worker; domain dns hostname; ip address; ssl certificate tls;
vulnerability security cve; threat malware virus; spam phishing; backup snapshot; permission access allowed; label tag; category type genre; keyword term; topic subject;
idea suggestion inspiration; plan itinerary schedule; goal objective; answer response; question query; math mathematics calculation equation; number digit figure; sum total addition;
average mean; random arbitrary; unit measurement; pdf document; csv spreadsheet; json data; data dataset; file path; animal pet; dog pet; cat pet; plant garden; star astronomy; planet astronomy space;
fun entertainment; celebrity actor; actor cast; artist musician singer; concert event show; event festival; theater theatre; museum attraction; landmark attraction sightseeing; park attraction;
university college school; school education; degree education; science scientific; physics science; chemistry chemical; biology biological; history historical; religion religious; bible scripture;
speed performance; seo search ranking; ad advertisement advertising marketing; campaign marketing; slide presentation Powerpoint; design layout; template theme; color colour; font typography;
ticket booking; seat ticket; reservation booking; room hotel; airport flight; ai artificial intelligence; llm model; prompt prompts; whole entire full complete; current now present; latest newest recent; nearby near local around;
multiple several many; large big size;
finance financial; economy economic; astrology astrological; academic scholarly scholar; science scientist; art artistic; photo photography; nutrition nutritional; health healthy wellness; medicine medical clinical;
top best popular trending; free available
`
const VERBS = `
get fetch retrieve read obtain load return pull grab; get show display view see tell give provide; list enumerate show browse listing; list get all;
search find lookup query locate discover seek explore; find get; create make add new generate build produce; create write insert; write save store record put persist;
add insert append attach include; delete remove erase clear drop discard strip; update edit change modify alter revise adjust patch; update set; set configure assign;
send post submit publish deliver share; send email mail message; compute calculate evaluate solve determine; count number total; convert transform translate change turn; translate interpret;
open launch start begin run; run execute perform invoke start; stop end cancel terminate halt kill close; pause suspend; resume continue; restart reboot reset;
copy duplicate clone; move rename relocate transfer; rename name; download fetch save get; upload import send; export save download; import load; sync synchronize;
check verify validate test confirm; check get status; monitor track watch follow observe; analyze examine inspect assess evaluate analysis; compare diff contrast versus;
summarize summary shorten condense; shorten short; explain describe clarify; describe schema details; recommend suggest propose advise; book reserve schedule; schedule plan arrange;
buy purchase order shop; sell trade; pay charge transfer; subscribe register signup; register create; login authenticate sign; join connect; connect link attach; invite add;
play listen watch; record capture; draw sketch paint design; design create; write compose draft author; rewrite paraphrase; proofread grammar correct; correct fix repair; debug fix error;
learn study teach practice; teach tutor explain; ask question answer; reply respond answer; chat talk converse speak discuss; remind notify alert; notify alert notification; estimate predict forecast;
sort order rank; filter select; select choose pick; merge combine join; split divide separate; extract parse scrape crawl; scrape crawl web; click press tap; type enter fill; scroll swipe;
navigate visit goto open; upload attach; compress zip; extract unzip; encrypt encode; decrypt decode; encode decode; hash checksum; deploy release publish; install setup; build compile; lint format;
approve accept allow; reject decline deny; assign delegate; archive store; restore recover undo revert; switch checkout change; stage add index; enable activate; disable deactivate; lock block; unlock unblock;
identify recognize detect; detect find; classify categorize; rate score; vote poll; review rate; enhance improve optimize; reduce decrease minimize; increase raise; resize scale crop; rotate flip;
`
const TOPICS = `
travel flight hotel trip vacation tourism itinerary destination airport booking luggage visa; restaurant food menu cuisine dining reservation;
recipe ingredient cook kitchen meal bake dish dinner lunch breakfast snack; diet nutrition calorie protein weight healthy vegan; fitness workout gym exercise muscle yoga running;
stock market invest trading portfolio dividend share finance financial ticker fund etf price investor Nasdaq economy earnings; crypto cryptocurrency Bitcoin Ethereum blockchain wallet coin token nft defi price; bank loan mortgage credit interest saving finance;
weather rain snow temperature wind humidity storm forecast sunny; movie film actor director cinema tv series streaming Imdb; music song artist album playlist band lyric concert;
sport football basketball baseball soccer league team player match tournament cricket tennis Nba Nfl; game play player puzzle chess level; job career resume interview salary hire recruit employer;
shop buy product price store discount cart sale gift fashion clothes shoe; house property rent apartment realtor mortgage bedroom; car vehicle drive dealer fuel electric mileage;
law legal court contract attorney patent trademark; doctor health symptom disease medical patient drug medicine; school learn student course study exam homework teacher university;
math equation algebra calculus solve calculate geometry; science research paper study journal academic scholar citation; news headline journalist politics current article; book read author novel library literature;
code programming software developer debug function repository Github compile; git commit branch merge diff repository staging; website web seo domain traffic hosting page html; image photo draw picture art visual design;
video Youtube clip watch stream channel; audio podcast voice listen sound; social Twitter Instagram Facebook Tiktok post follower hashtag Linkedin; email mail inbox message newsletter sender; chat message Slack channel conversation;
calendar event meeting schedule appointment reminder; task project todo deadline ticket sprint kanban; document pdf file page word text; spreadsheet Excel csv table row column; database sql table query schema row record;
file folder directory path disk filesystem; browser page click navigate screenshot dom element; container Docker image pod Kubernetes cluster deploy; cloud Aws Azure Gcp storage bucket instance; network ip dns port packet router;
security vulnerability password encryption threat malware scan; map location address distance route navigation coordinate geocode; language translate word vocabulary grammar english spanish french; zodiac horoscope astrology tarot sign fortune;
religion bible quran prayer god verse; child kid parent baby toy; pet dog cat animal breed; flower plant garden tree; marketing advertisement campaign brand seo audience; business company startup customer revenue sale; data chart analysis statistic visualize dashboard;
energy solar electricity power; space Nasa planet star satellite; joke humor fun comedy laugh; quote motivation inspire wisdom; date relationship love romantic; wedding party event celebrate birthday; writing essay blog article content copy;
geography geographic location; politics political government; education educational; invest investment investor investing; trade trading trader; market exchange; price value worth; earnings revenue income profit; fee cost price; expense spending cost budget;
outfit clothes clothing fashion apparel; shoe fashion; makeup beauty cosmetic; skin beauty; hobby interest; vacation destination; beach destination; city destination; neighborhood area location; rent lease rental; buy purchase sale; mortgage house;
paper study research; thesis research paper; citation reference; literature paper book; journal paper; author writer; blog post article; essay writing; copywriting writing content; grammar spelling; word vocabulary; dictionary definition meaning word; synonym word;
career job; interview job; internship job; hire recruit hiring; freelancer contractor hire; startup company business; founder company; competitor competition company; brand company logo; lead prospect sales; crm customer sales;
summary transcript video; Youtube video; podcast episode audio; playlist music song; movie show tv; stream streaming watch; anime manga; comic manga; cartoon animation; meme image funny; gif image; avatar profile image; wallpaper image; sticker emoji;
calorie food; vegetarian vegan; cuisine food restaurant; ingredient recipe; grocery supermarket food; cocktail drink; beer drink; allergy health; symptom health disease; hospital medical; therapy mental; meditation mindfulness; stress mental;
election vote politics; president government politics; senator congress government; patent intellectual; trademark brand; contract agreement legal; court case legal; crime police; visa immigration travel; passport travel;
earthquake disaster; hurricane storm weather; air quality pollution; carbon emission climate; electricity energy power; gas petrol fuel; gasoline fuel petrol; charger charging electric; parking car; license plate vehicle; vin vehicle;
birthday date age; anniversary date; deadline due date; holiday vacation; today date current; tomorrow date; age birth; name names; gender sex; nationality country; zip postal postcode; state region province; continent country;
number phone; sms text message; Whatsapp message chat; call phone; contact email phone; spreadsheet Excel; Powerpoint presentation; survey form questionnaire; form survey; poll survey; signature sign; scan ocr; barcode qr; qr code;
sentiment emotion; toxicity moderation; similarity similar compare; duplicate copy; anagram word; palindrome word; rhyme poem; riddle puzzle; crossword puzzle word; sudoku puzzle; chess game; dice random; lottery random number; coin flip random
`

export interface Related {
  term: string
  weight: number
}

/** The weight of words that are nearly interchangeable. */
export const SAME_WEIGHT = 0.7
const WEIGHTS = { same: SAME_WEIGHT, verbs: 0.4, topics: 0.35 }

interface Thesaurus {
  related: ReadonlyMap<string, readonly Related[]>
  properNames: ReadonlySet<string>
}

let thesaurus: Thesaurus | undefined

/** Built when it is first used: stemming all these words would take a third of the gateway's start. */
function getThesaurus(): Thesaurus {
  thesaurus ??= build()
  return thesaurus
}

function build(): Thesaurus {
  const properNames = new Set<string>()
  const table = new Map<string, Map<string, number>>()
  const tiers = [
    { text: SAME, weight: WEIGHTS.same },
    { text: VERBS, weight: WEIGHTS.verbs },
    { text: TOPICS, weight: WEIGHTS.topics }
  ]
  for (const { text, weight } of tiers) {
    for (const line of text.split(';')) {
      const listed = line.trim().split(/\s+/).filter(Boolean)
      for (const word of listed) if (/^[A-Z]/.test(word)) properNames.add(termOf(word.toLowerCase()))
      const group = [...new Set(listed.map((word) => termOf(word.toLowerCase())))]
      for (const from of group) {
        const row = table.get(from) ?? new Map<string, number>()
        table.set(from, row)
        for (const to of group) if (to !== from && (row.get(to) ?? 0) < weight) row.set(to, weight)
      }
    }
  }
  const rows = [...table].map(([from, row]) => [from, [...row].map(([term, weight]) => ({ term, weight }))] as const)
  return { related: new Map(rows), properNames }
}

export function relatedTerms(term: string): readonly Related[] {
  return getThesaurus().related.get(term) ?? []
}

const PHRASES: readonly (readonly [RegExp, string])[] = [
  [/\bget(ting)? rid of\b/gi, 'delete'],
  [/\blook(ing)? (up|for)\b/gi, 'search'],
  [/\bhow (many|often)\b/gi, 'count'],
  [/\bhow much\b/gi, 'price amount'],
  [/\bwhat time\b/gi, 'current time'],
  [/\bsign(ing)? (up|in)\b/gi, 'signup login'],
  [/\blog(ging)? (in|into|on)\b/gi, 'login'],
  [/\bset(ting)? up\b/gi, 'setup'],
  [/\bturn(ing)? (on|off)\b/gi, 'switch'],
  [/\bpull request\b/gi, 'pull request pr'],
  [/\bweb ?(site|page)\b/gi, 'website page'],
  [/\bto-?do\b/gi, 'todo']
]

/** Replaces idioms with the words that tools use. */
export function rephrase(text: string): string {
  let result = text
  for (const [phrase, replacement] of PHRASES) result = result.replace(phrase, replacement)
  return result
}

/** Whether this is a word of general English, not a proper name. */
export function isGeneralWord(term: string): boolean {
  const { related, properNames } = getThesaurus()
  return related.has(term) && !properNames.has(term)
}
