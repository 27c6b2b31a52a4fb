import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'

const types = { '.js': 'ESModule', '.wasm': 'CompiledWasm', '.sql': 'Text' } as const

/** The modules of a Worker that wrangler built into a folder. The main module comes first. */
export const modulesIn = (bundle: string) =>
  ['index.js', ...readdirSync(bundle).filter((name) => !name.endsWith('.js'))].flatMap((name) => {
    const type = types[path.extname(name) as keyof typeof types]
    const file = path.join(bundle, name)
    return type ? [{ type, path: file, contents: type === 'CompiledWasm' ? readFileSync(file) : readFileSync(file, 'utf8') }] : []
  })
