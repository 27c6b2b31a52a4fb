type Versions = Readonly<Record<string, string>>
export type Template = { name: string; spec: string; wrangler: string; versions: Versions }

/** The files of a new project, by their paths. `spec`: the version of reflex-agents. */
export function projectFiles({ name, spec, wrangler, versions }: Template): Record<string, string> {
  return {
    'package.json': manifest(name, spec, versions),
    'wrangler.toml': configuration(name, wrangler),
    'src/index.ts': INDEX,
    'src/agents/hello.ts': HELLO,
    'tests/hello.test.ts': TEST,
  }
}

function manifest(name: string, spec: string, versions: Versions): string {
  const at = (...names: string[]) => Object.fromEntries(names.map((package_name) => [package_name, versions[package_name] ?? 'latest']))
  const content = {
    name,
    private: true,
    type: 'module',
    scripts: { dev: 'reflex dev', test: 'reflex test', deploy: 'reflex deploy' },
    dependencies: { ...at('ai'), 'reflex-agents': spec },
    devDependencies: at('@cloudflare/vitest-plugin', 'vitest', 'wrangler'),
    allowScripts: { esbuild: true, workerd: true },
  }
  return `${JSON.stringify(content, null, 2)}\n`
}

const INSTALLED = 'node_modules/reflex-agents'

/** The package's own wrangler.toml, with the folders as a project has them. */
function configuration(name: string, wrangler: string): string {
  return wrangler
    .replace(/^name = .*$/m, `name = ${JSON.stringify(name)}`)
    .replace(/(?:^#.*\n)*\[\[rules\]\]\n(?:.+\n)*\n?/m, '')
    .replace('# The dashboard, which `npm run build` makes. Its', "# The dashboard. The page's")
    .replace('"./dashboard/dist"', `"./${INSTALLED}/dashboard/dist"`)
    .replace('migrations_dir = "migrations"', `migrations_dir = "${INSTALLED}/migrations"`)
    .replaceAll(/\bdocs\/([\w-]+\.md)/g, `${INSTALLED}/docs/$1`)
}

const INDEX = `import { reflex } from 'reflex-agents'
import { hello } from './agents/hello.ts'

// The first agent whose pattern matches serves a scope; the built-in \`prompted\` serves the rest.
const worker = reflex({ agents: [hello] })
export const { Scope, Sweeper, GlobalKey, Learner, Ledger } = worker
export default worker.handlers
`

const HELLO = `import { generateText } from 'ai'
import { defineAgent, typeFilter } from 'reflex-agents'

/** Answers messages in the scopes chat/*. */
export const hello = defineAgent({
  name: 'hello',
  scopes: ['chat/*'],
  filters: [typeFilter('ws.message')],
  async trigger(context, deps) {
    const { text } = await generateText({
      model: deps.model,
      instructions: 'Greet people by their names, in one sentence.',
      prompt: context.summarize(),
      abortSignal: deps.signal,
      maxRetries: 0, // a turn that fails is retried as a whole
    })
    if (text !== '') deps.reply(text)
    return { text } // a result removes the events from the context; null keeps them
  },
})
`

const TEST = `import { missingExports, testScope } from 'reflex-agents/testing'
import { expect, test } from 'vitest'
import * as worker from '../src/index.ts'

test('answers a message', async () => {
  // By the agent that serves this scope in the deployment.
  const scope = await testScope(worker.Scope.agents, { scope: 'chat/ada', model: ['Hello, Ada!'] })
  const ended = await scope.send({ type: 'ws.message', connection_id: 'ada', content: 'I am Ada' })
  expect(ended.status).toBe('completed')
  expect(await scope.replies()).toEqual(['Hello, Ada!'])
})

test('exports what wrangler.toml binds', () => {
  expect(missingExports(worker)).toEqual([])
})
`
