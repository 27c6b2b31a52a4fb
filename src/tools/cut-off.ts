/** Thrown by a tool's call that was cut off by something else than the plan, such as the tool's own time limit or a lost connection: the effect may have happened. */
export class CutOff extends Error {
  override readonly name = 'CutOff'
}
