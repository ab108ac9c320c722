import { z } from 'zod'

/** Where in a program a call comes from. All texts are hostile. */
const callPlace = z.object({
  /** The number of the call in its run. */
  n: z.number().int().positive(),
  /** The line of the program that makes it, and its text. The line is 0 if it is not known. */
  line: z.number().int().nonnegative(),
  source: z.string().max(300),
  /** The earlier results that contain the values of these arguments. */
  sources: z.array(z.object({ path: z.string(), server: z.string(), tool: z.string(), n: z.number().int() })).max(20)
})

export type CallPlace = z.infer<typeof callPlace>

/** The program of a model that makes a call. */
export const programOrigin = callPlace.extend({
  /** The call of `run_code`. */
  callId: z.string().min(1).max(200),
  /** Its tool is a reader of the sandbox, or the server's entry lists it in `readOnly`. */
  isRead: z.literal(true).optional(),
  /** Something that the person must know before they decide. */
  warning: z.string().max(1000).optional()
})
