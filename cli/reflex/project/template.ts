type Versions = Readonly<Record<string, string>>
export type ProjectTemplate = { name: string; spec: string; wrangler: string; versions: Versions }

const INSTALLED = 'node_modules/reflex-agents'
/** The same as in the package's `engines`. */
const LEAST_NODE = '>=22.14'

/** The files of a new project, by their paths. `spec`: the version of reflex-agents. */
export function projectFiles({ name, spec, wrangler, versions }: ProjectTemplate): Record<string, string> {
  return {
    'package.json': manifest(name, spec, versions),
    'tsconfig.json': TSCONFIG,
    '.gitignore': GITIGNORE,
    'README.md': readme(name),
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
    scripts: { dev: 'reflex dev', test: 'reflex test', check: 'tsc', deploy: 'reflex deploy' },
    dependencies: { ...at('ai'), 'reflex-agents': spec, ...at('zod') },
    devDependencies: at('@cloudflare/vitest-plugin', '@cloudflare/workers-types', 'typescript', 'vitest', 'wrangler'),
    engines: { node: LEAST_NODE },
    allowScripts: { esbuild: true, workerd: true },
  }
  return `${JSON.stringify(content, null, 2)}\n`
}

const TSCONFIG = `{
  "compilerOptions": {
    "target": "ES2024",
    "lib": ["ES2024"],
    "module": "ESNext",
    "moduleResolution": "Bundler",
    "types": ["@cloudflare/workers-types"],
    "strict": true,
    "noUncheckedIndexedAccess": true,
    "verbatimModuleSyntax": true,
    "allowImportingTsExtensions": true,
    "skipLibCheck": true,
    "noEmit": true
  },
  "include": ["src", "tests"]
}
`

/** .dev.vars holds keys; the folders hold state and what npm installs. */
const GITIGNORE = `node_modules/
.reflex/
.wrangler/
.dev.vars
coverage/
*.log
`

const readme = (name: string): string => `# ${name}

An agent on [Reflex](${INSTALLED}/docs/concepts.md). It needs Node 22.14 or later; with an older one,
\`npm i -D node@24\` brings one for this project.

\`\`\`sh
npm install
npm run dev       # runs it on this machine, and prints a key and a first event to send
npm test          # tests the agents in the runtime of Workers, with a scripted model
npm run check     # checks the types
npm run deploy    # deploys it to your Cloudflare account; --dry-run only checks
\`\`\`

| file | what it is |
| --- | --- |
| \`src/agents/hello.ts\` | the agent: which scopes it serves, which events it wants, what its turn does |
| \`src/index.ts\` | the deployment: its agents, and the Durable Object classes |
| \`wrangler.toml\` | bindings and variables, each with a comment |
| \`tests/hello.test.ts\` | tests of the deployment |
| \`.dev.vars\` | keys and variables of the local server, one NAME=value a line; git ignores it |

Read on: [quickstart](${INSTALLED}/docs/quickstart.md), [agents](${INSTALLED}/docs/agents.md),
[testing](${INSTALLED}/docs/testing.md), [deploying](${INSTALLED}/docs/deploying.md).
`

/** The package's own wrangler.toml, with the folders as a project has them. */
function configuration(name: string, wrangler: string): string {
  return wrangler
    .replace(/^name = .*$/m, `name = ${JSON.stringify(name)}`)
    .replace(/(?:^#.*\n)*\[\[rules\]\]\n(?:.+\n)*\n?/m, '')
    .replace('# REFLEX_ORIGINS =', 'REFLEX_ORIGINS =')
    .replace('node cli/prepare.js', `node ${INSTALLED}/dist/cli/reflex/bin.js prepare`)
    .replace('# Builds the page and, for wrangler dev, lays', '# For wrangler dev: lays')
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
