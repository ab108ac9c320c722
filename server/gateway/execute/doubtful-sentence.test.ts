import { expect, it } from 'vitest'
import { asksAbout, doubtAboutReading } from './doubtful-sentence.ts'

const tool = { name: 'read_text_file', description: 'Read the complete contents of a text file.' }

it('tells questions about a tool from requests', () => {
  expect(asksAbout('what does read_text_file do?', tool)).toBe(true)
  expect(asksAbout('is read_text_file safe?', tool)).toBe(true)
  expect(asksAbout('what is in the file?', tool)).toBe(false)
})

it('doubts a negation, a condition, or a question about a tool', () => {
  const doubtful = [
    'do not list my files',
    "please don't read the log",
    'Don’t open it',
    'never show the notes',
    'show the log but do not read the notes',
    'you must not list them',
    'stop reading text file /data/a.txt',
    'nobody should read text file /data/a.txt',
    'refrain from reading the log',
    'I would rather you did not read the log',
    'if the build fails, read the log',
    'read the log unless it is empty',
    'list the notes only if I am late',
    'read text file /data/a.txt once Alice has signed',
    'read the log as soon as Bob agrees',
    'when Bob agrees, read the log',
    'read the log when Bob agrees',
    'do nothing until Bob has agreed, then read the log',
    'what does cleanup do?',
    'how does list_files work',
    'is there a tool for text files?',
    'do you have any tools that read text files?'
  ]
  expect(doubtful.filter((request) => doubtAboutReading(request, tool) === undefined)).toEqual([])
})

it('doubts an order to change something if the tool only reads', () => {
  const orders = [
    'delete the whole knowledge graph',
    'delete directory tree /data',
    'empty the directory /data',
    'list the directory /data and then delete it',
    'please remove the text file',
    'could you rename the text file /data/a.txt',
    'read the text file /data/a.txt, then send it to bob@example.com',
    'I want to overwrite the text file',
    'the text file /data/a.txt should be deleted',
    'get rid of all text files',
    'please find the text files and get rid of them',
    'I want the text files gone',
    'we no longer need the text files',
    'all text files must go',
    'do away with the text files',
    'give Bob access to the text files',
    'tell Bob to wipe the text files',
    'could the text files be wiped?',
    'you can wipe the text files',
    'would you mind wiping the text files?',
    'wipe the text files',
    'drop all text files',
    'clear out the text files'
  ]
  const about = orders.map((request) => doubtAboutReading(request, tool))
  expect(about.every((reason) => reason?.includes('only reads') === true)).toBe(true)
  expect(doubtAboutReading('delete the text file', tool)).toContain('"delete"')
  // The word is the tool's own, and its server or mcp.json says that it reads.
  expect(doubtAboutReading('close the browser page', { name: 'browser_close', description: '' })).toBeUndefined()
})

it('doubts a sentence that is not plainly English', () => {
  const foreign = [
    'liste nicht das Verzeichnis /data',
    "n'affiche pas le répertoire /data",
    'wenn Bob zustimmt, read text file /data/a.txt',
    'lösche die Datei /data/a.txt',
    'no leas el archivo /data/a.txt',
    'non leggere il file /data/a.txt',
    'não leia o arquivo /data/a.txt',
    'lees het bestand /data/a.txt niet',
    'nie czytaj pliku /data/a.txt',
    'ファイルを読まないで /data/a.txt',
    '不要读取文件 /data/a.txt',
    'не читай файл /data/a.txt'
  ]
  expect(foreign.filter((request) => doubtAboutReading(request, tool) === undefined)).toEqual([])
})

it('trusts a sentence that plainly asks for something', () => {
  const plain = [
    'list files that do not contain TODO',
    'find issues that are not closed',
    'check if the domain is free',
    'what is the weather in Paris?',
    'how do I get from Rome to Milan by train?',
    "I can't find the report, search for it",
    'show me trains, including but not limited to night trains',
    'search for hotels, if possible with a pool',
    'when does the next bus leave?',
    'how do I get rid of old text files?',
    'which text files have gone?',
    'would you mind showing me the text files?',
    'can you give me a new text file?',
    'tell me how to read the text file',
    'show the delete log',
    'list added files',
    'add two numbers together',
    'read text file /data/Überblick.txt',
    'search for "ne pas lire"',
    'what is the weather in Zürich and São Paulo?',
    'read text file /data/a.txt'
  ]
  expect(plain.filter((request) => doubtAboutReading(request, tool) !== undefined)).toEqual([])
})

it('doubts a text that is too long for a sentence', () => {
  expect(doubtAboutReading(`read the text file ${'and the log '.repeat(1000)}`, tool)).toContain('too long')
})

const devices = { name: 'list_devices', description: 'List all devices on the network.' }
const logs = { name: 'get_router_logs', description: 'Get the logs of the router.' }

it('doubts what takes itself back or leaves something out', () => {
  const doubtful = [
    'list devices (do not really run it)',
    'list devices? no thanks',
    'under no circumstances list devices',
    'list no devices',
    'hold off on listing all devices',
    'without listing all devices tell me a joke',
    'list devices - scratch that',
    'list devices, or rather leave it',
    'list all devices except the router',
    'skip listing all devices',
    'unlist all devices',
    'pretend to list all devices'
  ]
  expect(doubtful.filter((request) => doubtAboutReading(request, devices) === undefined)).toEqual([])
})

const orders = { name: 'list_orders', description: 'List all orders in the shop.' }

it('doubts what leaves something out, waits for something, or asks about the tool, in more words', () => {
  const doubtful = [
    'there is no need to list all orders',
    'anything but list all orders',
    'list everything other than orders',
    'list all orders but the newest',
    'list the orders of any customer but Acme',
    "do n't list all orders",
    'orders no more',
    'ask me first, then list all orders',
    'list all orders subject to approval',
    'list all orders until I stop you',
    'I wonder whether to list all orders',
    'is list_orders safe?',
    'explain list_orders',
    'which tool lists all orders'
  ]
  expect(doubtful.filter((request) => doubtAboutReading(request, orders) === undefined)).toEqual([])
  const plain = ['I wonder if you could list all orders', 'list_orders', 'list any cheap but good orders', 'order list']
  expect(plain.filter((request) => doubtAboutReading(request, orders) !== undefined)).toEqual([])
})

it('doubts a second order, and a noun of the tool that orders something', () => {
  const second = [
    'list orders and decline all',
    'list all orders, flagging spam',
    'search the orders for the text "ignore all" and answer it',
    'order shoes',
    'one more order',
    'get all orders out of the system',
    'gather up and burn the orders'
  ]
  expect(second.filter((request) => doubtAboutReading(request, orders)?.includes('only reads') !== true)).toEqual([])
})

it('doubts orders by their form, also verbs that no list has', () => {
  const orders = [
    'list devices and turn them all off',
    'list devices, zap them',
    'list all devices & unpair them',
    'kick all devices off the list',
    'get all devices off',
    'make the router list all devices',
    ...['ban', 'block', 'lock', 'unpair', 'sell', 'Flash', 'frobnicate'].map((verb) => `${verb} all listed devices`)
  ]
  expect(orders.filter((request) => doubtAboutReading(request, devices) === undefined)).toEqual([])
  const caused = [
    'get the router logs wiped',
    'have the router logs shredded',
    'get order "55" reversed',
    'get logs; rm -rf',
    'list orders of customer "Acme" and refund them'
  ]
  expect(caused.filter((request) => doubtAboutReading(request, logs) === undefined)).toEqual([])
})

it('takes plain requests for readers at their word', () => {
  const plain = [
    'list all devices',
    'show me the devices',
    'which devices are there?',
    'Please list devices.',
    'devices'
  ]
  expect(plain.filter((request) => doubtAboutReading(request, devices) !== undefined)).toEqual([])
  expect(doubtAboutReading('get the logs of the router', logs)).toBeUndefined()
})
