import { readFileSync } from 'node:fs'
import path from 'node:path'
import { compile } from '../../cli/sandbox/compile.ts'

/** In plain Node; a Worker imports the file. */
export const sandboxModule = compile(readFileSync(path.join(import.meta.dirname, '../../src/reflexes/engine/sandbox.wasm')))
