/** The data sets of the routing bench, with what was measured before and the goals, and the table that it prints. */
import type { SetOptions } from './routing-data.ts'

interface Figures {
  first: number
  withinFive: number
  withinFiveOrNamesake: number
  calibrationError: number
  calibrationErrorByChance: number
  abstained: number
  requests: number
}

interface Half {
  words: Figures
  meaning?: Figures
}

interface MeasuredSet {
  label: string
  name: string
  options: SetOptions
  /** First, within five, calibration error and share of abstentions on the test half, before there were embeddings on this machine. */
  before?: [number, number, number, number]
  /** With embeddings, on the test half. */
  goal?: string
}

export interface Row extends MeasuredSet {
  tuning: Half
  test: Half
}

const HAYSTACK = '6 less at five'
const UNSERVED = 'abstained: 60'

export const SETS: MeasuredSet[] = [
  { label: 'metatool', name: 'metatool', options: {}, before: [49.7, 73.1, 0.041, 10.1], goal: '60/82' },
  {
    label: 'metatool, with usage',
    name: 'metatool',
    options: { examplesPerTool: 1000 },
    before: [81.4, 94.2, 0.051, 4.6],
    goal: '85/96'
  },
  {
    label: 'metatool, with 5 uses per tool',
    name: 'metatool',
    options: { examplesPerTool: 5 },
    before: [56.7, 80.1, 0.042, 15.8]
  },
  {
    label: 'stabletoolbench',
    name: 'stabletoolbench',
    options: {},
    before: [73.9, 88.8, 0.087, 1.4],
    goal: '76/92'
  },
  {
    label: 'mcpproxy_golden',
    name: 'mcpproxy_golden',
    options: {},
    before: [87.5, 95.8, 0.299, 4.2],
    goal: '78/96'
  },
  { label: 'bfcl_live', name: 'bfcl_live', options: {}, before: [57.7, 86, 0.048, 4.1] },
  {
    label: 'metatool + haystack',
    name: 'metatool',
    options: { distractors: true },
    before: [33.4, 48.7, 0.076, 24.2],
    goal: HAYSTACK
  },
  {
    label: 'metatool + haystack, with usage',
    name: 'metatool',
    options: { distractors: true, examplesPerTool: 1000 },
    before: [81, 93.7, 0.053, 6.2],
    goal: HAYSTACK
  },
  {
    label: 'stabletoolbench + haystack',
    name: 'stabletoolbench',
    options: { distractors: true },
    before: [71, 85.5, 0.068, 1.1],
    goal: HAYSTACK
  },
  {
    label: 'mcpproxy_golden + haystack',
    name: 'mcpproxy_golden',
    options: { distractors: true },
    before: [8.3, 66.7, 0.216, 54.2],
    goal: HAYSTACK
  },
  { label: 'bfcl_live + haystack', name: 'bfcl_live', options: { distractors: true }, goal: HAYSTACK },
  { label: 'unserved: bfcl_live', name: 'bfcl_live', options: { irrelevant: true }, goal: UNSERVED },
  {
    label: 'unserved: golden tools, metatool asked',
    name: 'mcpproxy_golden',
    options: { foreign: 'metatool' },
    goal: UNSERVED
  },
  {
    label: 'unserved: bfcl_live tools, golden asked',
    name: 'bfcl_live',
    options: { foreign: 'mcpproxy_golden' },
    goal: UNSERVED
  }
]

const isUnserved = ({ options }: MeasuredSet) => options.irrelevant === true || options.foreign !== undefined

function cells(row: Row): string[] {
  const { words, meaning } = row.test
  const hits = (figures: Figures | undefined) => {
    if (!figures || isUnserved(row)) return ''
    // Most tools of the dev sets have copies among the distractors.
    const namesakes = row.options.distractors ? ` (${figures.withinFiveOrNamesake.toFixed(1)})` : ''
    return `${figures.first.toFixed(1)}/${figures.withinFive.toFixed(1)}${namesakes}`
  }
  const error = (figures: Figures | undefined) =>
    figures && !isUnserved(row) ? figures.calibrationError.toFixed(3) : ''
  const [first, five, wrong, refused] = row.before ?? []
  return [
    row.label,
    first === undefined ? '' : `${first.toFixed(1)}/${five?.toFixed(1)}`,
    hits(words),
    hits(meaning),
    row.goal ?? '',
    [wrong?.toFixed(3) ?? '', error(words), error(meaning)].join(' '),
    isUnserved(row) ? '' : words.calibrationErrorByChance.toFixed(3),
    [refused?.toFixed(1) ?? '', words.abstained.toFixed(1), meaning?.abstained.toFixed(1) ?? ''].join(' ')
  ]
}

/** Now: with words alone, and with embeddings. */
const COLUMNS = [
  ...['set (test half)', 'before', 'now, words', 'now, meaning', 'goal', 'error (goal .06): before, words, meaning'],
  ...['by chance', 'abstained % (goal for served: 8): before, words, meaning']
]

/** First/within five, in percent of the test half; in brackets, within five if a tool of the same name counts too. */
export function tableOf(rows: readonly Row[]): string {
  const table = [COLUMNS, ...rows.map(cells)]
  const widths = COLUMNS.map((_, at) => Math.max(...table.map((line) => line[at]?.length ?? 0)))
  return table.map((line) => line.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(' | ')).join('\n')
}

export function rowsOf(rows: readonly Row[]): Record<string, object> {
  return Object.fromEntries(
    rows.map(({ label, before, goal, tuning, test }) => [label, { before, goal, tuning, test }])
  )
}
