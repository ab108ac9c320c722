/** A part of a line: from the character at `from` up to the one before `to`. */
export interface Mark {
  from: number
  to: number
}

/** One row of a comparison, line by line. */
export interface DiffRow {
  kind: 'same' | 'added' | 'removed' | 'gap'
  text: string
  before?: number | undefined
  after?: number | undefined
  /** The words that changed in this line. */
  marks?: Mark[] | undefined
  /** The unchanged lines that a gap stands for. */
  folded?: DiffRow[] | undefined
}
