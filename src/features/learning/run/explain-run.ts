import type { Program, Sandbox } from '../../../reflexes/sandbox.ts'
import { partsOf } from '../../../reflexes/weights.ts'
import type { ProgramWhy } from '../contract/why.ts'
import type { Saw } from '../episode.ts'
import { explained, explaining } from '../reflexes/explain.ts'
import { whyOf } from '../reflexes/explain-words.ts'

/** Runs the program with an entry that says why, and acts on nothing. */
export function explainRun(sandbox: Sandbox, { hash, code }: Program, saw: Saw): { why: ProgramWhy; fuel: number } {
  const unknown = (reason: string): ProgramWhy => ({ would: null, points: null, reasons: [reason] })
  const entry = explaining(code)
  if (entry === null) return { why: unknown('Its code is not of the form that learning writes, so that it says no more.'), fuel: 0 }
  const { value, error, fuel } = sandbox.run({ hash: `why ${hash}`, code: entry.code }, saw)
  const found = explained.safeParse(value)
  if (!found.success) return { why: unknown(`It could not be explained: ${error ?? 'its answer has another form'}.`), fuel }
  const parts = partsOf(code)
  return { why: whyOf(entry, parts.ok ? parts.weights : null, found.data, saw), fuel }
}
