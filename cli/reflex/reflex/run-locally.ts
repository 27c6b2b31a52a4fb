import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ReflexRun } from '../../../src/contract/reflex.ts'
import type { CodeError } from '../../../src/reflexes/static-check.ts'

type Result = { ok: true; run: ReflexRun } | { ok: false; errors: readonly CodeError[] }

/** Checks and runs code as the server does. Loaded on use, as no other command needs a sandbox. */
export async function runLocally(code: string, context: Record<string, unknown>): Promise<Result> {
  const [{ compile }, { checkReflex }, { QuickJsSandbox }, { runReflex }, { sampleContext }] = await Promise.all([
    import('../../sandbox/compile.ts'),
    import('../../../src/reflexes/static-check.ts'),
    import('../../../src/reflexes/quickjs-sandbox.ts'),
    import('../../../src/reflexes/run-reflex.ts'),
    import('../../../src/reflexes/reflex-context.ts'),
  ])
  const checked = await checkReflex(code)
  if (!checked.ok) return checked
  const wasm = await readFile(join(import.meta.dirname, '../../../src/reflexes/engine/sandbox.wasm'))
  const sandbox = new QuickJsSandbox(compile(wasm))
  try {
    return { ok: true, run: runReflex(sandbox, { code, hash: checked.hash }, { ...sampleContext, ...context }) }
  } finally {
    sandbox.dispose()
  }
}
