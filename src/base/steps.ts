/** Work in steps of a few ms, so that an object can serve others between two of them. */
export type Steps<Result> = Generator<undefined, Result, undefined>

export function atOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}
