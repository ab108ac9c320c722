/** Colours and font of console text, from the numbers of SGR sequences. Text is always readable, whatever colours it asks for. */
export interface Look {
  /** Classes for bold, italic and the like. */
  className: string
  color?: string | undefined
  background?: string | undefined
}
export interface Style {
  /** `#rrggbb`; empty for the default. */
  fg: string
  bg: string
  bold: boolean
  dim: boolean
  italic: boolean
  underline: boolean
  strike: boolean
  inverse: boolean
}
export const PLAIN_STYLE: Style = {
  ...{ fg: '', bg: '', bold: false, dim: false, italic: false, underline: false, strike: false, inverse: false }
}
/** The console's own colours; see style.css. They are nearly the same in both themes. */
const PAPER = '#1b1c1f'
const INK = '#e4e4e1'
const PALETTE = [
  ...['#7c7f86', '#ff8f86', '#7fd89d', '#f0c95c', '#86b8ff', '#e79bd9', '#72d3dc', '#dcdcd8'],
  ...['#a5a6a3', '#ffb4ad', '#a6ecbd', '#ffe08a', '#b3d4ff', '#f6bdec', '#a3ecf2', '#ffffff']
]
/** As a background, the plain colours are darker, so that light text can be read on them. */
const GROUNDS = ['#000000', '#8f2a22', '#1d6b3d', '#7d5b09', '#234f96', '#7a2c6c', '#14666f', '#c9c9c5']
const LEVELS = [0, 95, 135, 175, 215, 255]
/** The minimum contrast of WCAG. Black or white reaches it on every background. */
const MIN_CONTRAST = 4.5

/** The colours of `38;5;n` and `48;5;n`. */
function indexed(index: number, palette: readonly string[]): string {
  if (!Number.isInteger(index) || index < 0 || index > 255) return ''
  if (index < 16) return palette[index] ?? PALETTE[index] ?? ''
  if (index > 231) return hex(8 + 10 * (index - 232), 8 + 10 * (index - 232), 8 + 10 * (index - 232))
  const cube = index - 16
  const level = (step: number) => LEVELS[Math.floor(cube / step) % 6] ?? 0
  return hex(level(36), level(6), level(1))
}

function hex(...parts: number[]): string {
  return `#${parts
    .map((part) =>
      Math.min(255, Math.max(0, part || 0))
        .toString(16)
        .padStart(2, '0')
    )
    .join('')}`
}

/** `codes` is what stands between `ESC [` and `m`. */
export function restyled(before: Style, codes: string): Style {
  let style = before
  // `38:2::r:g:b` has one more part than `38;2;r;g;b`: the colour space, which is left empty.
  const numbers = codes
    .replace(/([34]8:2):\d*:(\d*:\d*:\d)/g, '$1:$2')
    .split(/[;:]/)
    .map(Number)
  for (let at = 0; at < numbers.length; at++) {
    const code = numbers[at] ?? 0
    if (code === 38 || code === 48) {
      const isIndexed = numbers[at + 1] === 5
      if (!isIndexed && numbers[at + 1] !== 2) return style
      const palette = code === 38 ? PALETTE : GROUNDS
      const [red = 0, green = 0, blue = 0] = numbers.slice(at + 2, at + 5)
      const colour = isIndexed ? indexed(red, palette) : hex(red, green, blue)
      style = code === 38 ? { ...style, fg: colour } : { ...style, bg: colour }
      at += isIndexed ? 2 : 4
    } else style = simplyRestyled(style, code)
  }
  return style
}

function simplyRestyled(style: Style, code: number): Style {
  if (code === 0) return PLAIN_STYLE
  if (code >= 30 && code <= 37) return { ...style, fg: PALETTE[code - 30] ?? '' }
  if (code >= 90 && code <= 97) return { ...style, fg: PALETTE[code - 82] ?? '' }
  if (code >= 40 && code <= 47) return { ...style, bg: GROUNDS[code - 40] ?? '' }
  if (code >= 100 && code <= 107) return { ...style, bg: PALETTE[code - 92] ?? '' }
  const change = Object.hasOwn(CHANGES, code) ? CHANGES[code] : undefined
  return change ? { ...style, ...change } : style
}

/** Blinking and hidden text (5, 6, 8) are left out on purpose. */
const CHANGES: Record<number, Partial<Style>> = {
  1: { bold: true },
  2: { dim: true },
  3: { italic: true },
  4: { underline: true },
  7: { inverse: true },
  9: { strike: true },
  21: { underline: true },
  22: { bold: false, dim: false },
  23: { italic: false },
  24: { underline: false },
  27: { inverse: false },
  29: { strike: false },
  39: { fg: '' },
  49: { bg: '' }
}

export function lookOf(style: Style, className = ''): Look {
  const { bold, italic, underline, strike, dim, inverse } = style
  const classes = [
    bold && 'font-bold',
    italic && 'italic',
    underline && 'underline',
    strike && 'line-through',
    className
  ]
  const [color, background] = inverse ? [style.bg || PAPER, style.fg || INK] : [style.fg, style.bg]
  const readable = background !== '' || color !== '' ? readableOn(color || INK, background || PAPER) : ''
  const shown = dim && background === '' ? (readable === '' ? PALETTE[8] : dimmed(readable)) : readable
  return {
    className: classes.filter(Boolean).join(' '),
    ...(shown && { color: shown }),
    ...(background && { background })
  }
}

/** Nearer to the paper, but still readable. */
const dimmed = (colour: string) => readableOn(mixed(colour, PAPER, 0.3), PAPER)

/** Text in the colour of its background could hide what a command has said. The hue stays where it can. */
function readableOn(colour: string, ground: string): string {
  const end = contrast('#ffffff', ground) >= contrast('#000000', ground) ? '#ffffff' : '#000000'
  for (const share of [0, 0.15, 0.3, 0.45, 0.6, 0.8]) {
    const shown = mixed(colour, end, share)
    if (contrast(shown, ground) >= MIN_CONTRAST) return shown
  }
  return end
}

function mixed(one: string, other: string, share: number): string {
  const more = channels(other)
  return hex(...channels(one).map((part, at) => Math.round(part * (1 - share) + (more[at] ?? 0) * share)))
}

function channels(colour: string): number[] {
  return [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16))
}

/** As WCAG defines it: from 1 (the same) to 21 (black on white). */
export function contrast(one: string, other: string): number {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b)
  return (light + 0.05) / (dark + 0.05)
}

function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = channels(colour).map((part) => {
    const share = part / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}
