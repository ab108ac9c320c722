/** Measures how well confidences are calibrated. */

const BINS = 10
const DRAWS = 200

export interface Judged {
  confidence: number
  first: boolean
}

/** Expected calibration error: mean difference between confidence and accuracy, over ten bins of confidence. */
export function calibrationError(answers: readonly Judged[]): number {
  const gaps = new Float64Array(BINS)
  for (const { confidence, first } of answers) {
    const bin = Math.min(BINS - 1, Math.floor(confidence * BINS))
    gaps[bin] = (gaps[bin] ?? 0) + confidence - (first ? 1 : 0)
  }
  return gaps.reduce((sum, gap) => sum + Math.abs(gap), 0) / Math.max(1, answers.length)
}

/** The error that perfectly calibrated confidences would show by chance; large in small sets. */
export function chanceError(answers: readonly Judged[]): number {
  let state = 1
  const random = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
  let sum = 0
  for (let draw = 0; draw < DRAWS; draw += 1) {
    sum += calibrationError(answers.map(({ confidence }) => ({ confidence, first: random() < confidence })))
  }
  return sum / DRAWS
}
