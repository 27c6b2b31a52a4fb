import { readFileSync } from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { convertV4MiniflareOptions, Miniflare, type V4MiniflareOptions } from 'miniflare'
import { modulesIn } from '../support/built-modules.ts'

// Serves the Worker that the set-up of the tests built, by the runtime and the configuration of
// `wrangler dev`, and with its options. wrangler itself would take two thirds of each start.
const { values } = parseArgs({
  options: {
    'persist-to': { type: 'string', default: '' },
    port: { type: 'string', default: '' },
    var: { type: 'string', multiple: true, default: [] },
  },
  strict: false,
})
const built = process.env['REFLEX_BUILT'] ?? ''
const { bindings, ...options } = JSON.parse(readFileSync(path.join(built, 'options.json'), 'utf8')) as V4MiniflareOptions & {
  bindings: Record<string, string>
}
const variables = (values.var as string[]).map((given) => [given.slice(0, given.indexOf(':')), given.slice(given.indexOf(':') + 1)])

const host = new Miniflare(
  convertV4MiniflareOptions({
    ...options,
    // wrangler names its objects after the Worker: state that it made is found.
    name: 'reflex',
    modules: modulesIn(built),
    modulesRoot: built,
    cf: false,
    host: '127.0.0.1',
    port: Number(values.port),
    resourcePersistencePath: path.join(String(values['persist-to']), 'v3'),
    bindings: { ...bindings, ...Object.fromEntries(variables) },
  }),
)
process.once('SIGTERM', () => void host.dispose().then(() => process.exit(0)))
await host.ready
console.log(`Ready on http://127.0.0.1:${values.port}`)
