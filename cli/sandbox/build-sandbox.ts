import { bootRealm } from './boot-realm.ts'
import { compile } from './compile.ts'
import { meterWasm } from './meter-wasm.ts'
import { sealWasm } from './seal-wasm.ts'

type Parts = { quickjs: Uint8Array; glue: string; realm: string }

/** QuickJS, metered, with the realm already in its memory. The same parts give the same bytes. */
export async function buildSandbox({ quickjs, glue, realm }: Parts): Promise<Uint8Array<ArrayBuffer>> {
  const metered = meterWasm(quickjs)
  const booted = await withoutSurroundings(() => bootRealm(compile(metered), realm))
  return sealWasm(metered, { imports: importNames(glue), exports: exportNames(glue), ...booted })
}

/**
 * QuickJS seeds Math.random, which the realm takes away, with the time, and Emscripten keeps the
 * language: the bytes would differ.
 */
async function withoutSurroundings<Result>(work: () => Promise<Result>): Promise<Result> {
  const { now } = Date
  const navigator = Object.getOwnPropertyDescriptor(globalThis, 'navigator')
  Date.now = () => 0
  Object.defineProperty(globalThis, 'navigator', { value: { language: 'C' }, configurable: true })
  try {
    return await work()
  } finally {
    Date.now = now
    if (navigator) Object.defineProperty(globalThis, 'navigator', navigator)
  }
}

const FUNCTIONS = ['QTS_Eval', 'QTS_Call', 'QTS_NewString', 'QTS_GetString', 'QTS_ResolveException']

/**
 * The minified names of what the sandbox calls, read out of Emscripten's JavaScript:
 * `d._QTS_Call=b.ma`.
 */
function exportNames(glue: string): Record<string, string> {
  const found = Array.from(glue.matchAll(/\b_(\w+)=\w+\.([\w$]+)/g), ([, name = '', minified = '']): [string, string] => [minified, name])
  const kept = found.filter(([, name]) => FUNCTIONS.includes(name))
  if (kept.length !== FUNCTIONS.length) throw new Error(`not all of ${FUNCTIONS.join(', ')} were found`)
  return { ...Object.fromEntries(kept), fuel: 'fuel', depth: 'depth', stack_pointer: 'stack_pointer' }
}

function importNames(glue: string): Record<string, string> {
  const interrupt = /([\w$]+):function\(\w+\)\{return \w+\.callbacks\.shouldInterrupt/.exec(glue)?.[1]
  const grow = /([\w$]+):\w+=>\{var \w+=\w+\.length;\w+>>>=0;/.exec(glue)?.[1]
  if (interrupt === undefined || grow === undefined) throw new Error('not all imports were found')
  return { [interrupt]: 'interrupt', [grow]: 'grow' }
}
