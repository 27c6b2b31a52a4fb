import { type Computing, unboundedComputing } from '../../base/computing.ts'

/** Long work of a scope, which rests so that the scope and its isolate serve others meanwhile. */
export const serving = (): Computing => unboundedComputing({ now: () => Date.now(), wait: (ms) => scheduler.wait(ms) })
