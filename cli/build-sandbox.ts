import { readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import { buildSandbox } from './sandbox/build-sandbox.ts'

/**
 * Rebuilds src/reflexes/engine/sandbox.wasm. Run it after a change of realm.js, the metering or
 * QuickJS's version.
 */
const engine = path.join(import.meta.dirname, '../src/reflexes/engine')
const { resolve } = createRequire(import.meta.url)
const sealed = await buildSandbox({
  quickjs: await readFile(resolve('@jitl/quickjs-wasmfile-release-sync/wasm')),
  glue: await readFile(resolve('@jitl/quickjs-wasmfile-release-sync/emscripten-module'), 'utf8'),
  realm: await readFile(path.join(engine, 'realm.js'), 'utf8'),
})
await writeFile(path.join(engine, 'sandbox.wasm'), sealed)
console.log(`sandbox.wasm: ${sealed.length} bytes`)
