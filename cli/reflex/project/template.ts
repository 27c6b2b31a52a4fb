import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

type Versions = Readonly<Record<string, string>>
/** `folder`: the templates of the package. `wrangler`: its own wrangler.toml. */
type ProjectTemplate = { name: string; template: TemplateName; spec: string; folder: string; wrangler: string; versions: Versions }

export const TEMPLATES = {
  chat: 'answers messages',
  inbox: 'sorts mails into queues, and learns it',
  guard: 'blocks addresses that guess passwords, without a model',
  api: 'takes orders over HTTP, and calls another service once for each',
  partitions: 'spreads a hot key over sixteen scopes, which tell one that decides',
  sdk: 'gates the skills of an agent in your own Node process, without Workers',
} as const
export type TemplateName = keyof typeof TEMPLATES

const INSTALLED = 'node_modules/reflex-agents'
/** The local server has the pages. A project without a server has them as files. */
const pageIn = (isWorker: boolean, name: string): string =>
  isWorker ? `http://127.0.0.1:8787/docs/${name}` : `${INSTALLED}/dashboard/dist/docs/${name}.html`
/** The same as in the package's `engines`. */
const LEAST_NODE = '>=22.14'

/** The files of a new project, by their paths. `spec`: the version of reflex-agents. */
export function projectFiles({ name, template, spec, folder, wrangler, versions }: ProjectTemplate): Record<string, string> {
  const isWorker = template !== 'sdk'
  const copied = [join(folder, 'common'), ...(isWorker ? [join(folder, 'worker')] : []), join(folder, template)].map(filesOf)
  return {
    ...(Object.assign({}, ...copied) as Record<string, string>),
    'package.json': manifest(name, spec, versions, isWorker),
    'tsconfig.json': tsconfig(isWorker),
    'README.md': readme(name, template),
    ...(isWorker && { 'wrangler.toml': configuration(name, wrangler) }),
  }
}

/** npm leaves files called .gitignore out of a package, so the template's has no dot. */
function filesOf(folder: string): Record<string, string> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return Object.fromEntries(
    entries.map(({ parentPath, name }) => {
      const path = relative(folder, join(parentPath, name))
      return [path === 'gitignore' ? '.gitignore' : path, readFileSync(join(parentPath, name), 'utf8')]
    }),
  )
}

function manifest(name: string, spec: string, versions: Versions, isWorker: boolean): string {
  const at = (...names: string[]) => Object.fromEntries(names.map((package_name) => [package_name, versions[package_name] ?? 'latest']))
  const content = {
    name,
    private: true,
    type: 'module',
    scripts: isWorker
      ? { dev: 'reflex dev', test: 'reflex test', check: 'tsc', deploy: 'reflex deploy' }
      : { test: 'vitest run', check: 'tsc' },
    dependencies: { ...at('ai'), 'reflex-agents': spec, ...at('zod') },
    devDependencies: isWorker
      ? at('@cloudflare/vitest-plugin', '@cloudflare/workers-types', 'typescript', 'vitest', 'wrangler')
      : at('@types/node', 'typescript', 'vitest'),
    engines: { node: LEAST_NODE },
    ...(isWorker && { allowScripts: { esbuild: true, node: true, workerd: true } }),
  }
  return `${JSON.stringify(content, null, 2)}\n`
}

const tsconfig = (isWorker: boolean): string => `{
  "compilerOptions": {
    "target": "ES2024",
    "lib": ["ES2024"],
    "module": "ESNext",
    "moduleResolution": "Bundler",
    "types": ["${isWorker ? '@cloudflare/workers-types' : 'node'}"],
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

const COMMANDS = `npm install
npm run dev       # runs it on this machine, and prints a key and a first event to send
npm test          # tests the agents in the runtime of Workers, with a scripted model
npm run check     # checks the types
npm run deploy    # deploys it to your Cloudflare account; --dry-run only checks`

const FILES: Readonly<Record<TemplateName, string>> = {
  chat: agentFiles('hello'),
  inbox: agentFiles('inbox'),
  guard: agentFiles('guard'),
  api: agentFiles('api'),
  partitions: agentFiles('orders'),
  sdk: `| \`src/notes.ts\` | the skills, the tools, and an agent whose proposals pass the gate |
| \`tests/notes.test.ts\` | its test, with a scripted model |`,
}

function agentFiles(agent: string): string {
  return `| \`src/agents/${agent}.ts\` | the agent: which scopes it serves, which events it wants, what its turn does |
| \`src/index.ts\` | the deployment: its agents, and the Durable Object classes |
| \`src/page.ts\` | the page at \`/try\`, which sends one event |
| \`src/try.json\` | the form of that page, and the first event that \`npm run dev\` prints |
| \`wrangler.toml\` | bindings and variables, each with a comment |
| \`tests/${agent}.test.ts\` | tests of the deployment |
| \`.dev.vars\` | keys and variables of the local server, one NAME=value a line; git ignores it |`
}

function readme(name: string, template: TemplateName): string {
  const isWorker = template !== 'sdk'
  const next = isWorker ? ['quickstart', 'agents', 'testing', 'deploying'] : ['skills', 'core', 'langchain']
  return `# ${name}

A project on [Reflex](${pageIn(isWorker, 'concepts')}): it ${TEMPLATES[template]}. It needs Node 22.14 or later; with an
older one, \`npm i -D node@24\` brings one for this project.

\`\`\`sh
${isWorker ? COMMANDS : 'npm install\nnpm test          # with a scripted model\nnpm run check     # checks the types'}
\`\`\`

| file | what it is |
| --- | --- |
${FILES[template]}
| \`.github/\`, \`.devcontainer/\` | the tests on GitHub, a container to develop in |

Read on${isWorker ? ', while `npm run dev` runs' : ''}: ${next.map((page) => `[${page}](${pageIn(isWorker, page)})`).join(', ')}.
`
}

/** The package's own wrangler.toml, with the folders as a project has them. */
function configuration(name: string, wrangler: string): string {
  return wrangler
    .replace(/^name = .*$/m, `name = ${JSON.stringify(name)}`)
    .replace(/(?:^#.*\n)*\[\[rules\]\]\n(?:.+\n)*\n?/m, '')
    .replace('# REFLEX_ORIGINS =', 'REFLEX_ORIGINS =')
    .replace('run_worker_first = ["/v1/*"', 'run_worker_first = ["/try", "/try.js", "/v1/*"')
    .replace('node cli/prepare.js', `node ${INSTALLED}/dist/cli/reflex/bin.js prepare`)
    .replace('# Builds the page and, for wrangler dev, lays', '# For wrangler dev: lays')
    .replace('# The dashboard, which `npm run build` makes. Its', "# The dashboard. The page's")
    .replace('"./dashboard/dist"', `"./${INSTALLED}/dashboard/dist"`)
    .replaceAll('migrations_dir = "migrations"', `migrations_dir = "${INSTALLED}/migrations"`)
    .replaceAll(/\bdocs\/([\w-]+)\.md/g, '/docs/$1 of the local server')
}
