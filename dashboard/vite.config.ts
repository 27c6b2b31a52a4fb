import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { defineConfig, type Plugin } from 'vite'

const { resolve } = createRequire(import.meta.url)

/** Swagger UI, for the API reference at `/v1/docs`. The dashboard itself loads none of it. */
const reference: Plugin = {
  name: 'api-reference',
  apply: 'build',
  async generateBundle() {
    for (const name of ['swagger-ui-bundle.js', 'swagger-ui.css']) {
      this.emitFile({ type: 'asset', fileName: `reference/${name}`, source: await readFile(resolve(`swagger-ui-dist/${name}`)) })
    }
  },
}

const pages = (names: string): RegExp => new RegExp(`src/pages/(?:${names})`)
/**
 * The files of the build. Each link loads the shell, the file of its page and what that imports,
 * 25 kB in all; the rest of a page, such as a tab or a dialog, is loaded when it is shown. Pages
 * share many words: fewer files would be smaller together, but each link would load more.
 */
const FILES = [
  {
    name: 'shell',
    test: /^(?!.*(?:sign-in|menu|use-pages|use-action|socket)).*(?:node_modules|vite|src\/(?:main|app|layout|api|css)|src\/ui\/(?:feedback|text|page|time|numbers|links|tabs|notices|status|use-keys))/s,
  },
  { name: 'account', test: /src\/layout\/(?:sign-in|menu)/ },
  { name: 'parts', test: /src\/ui\/json|src\/api\/use-action/ },
  { name: 'lists', test: /src\/ui\/(?:dialog|form|table)|src\/api\/use-pages|src\/pages\/reflexes\/filter/ },
  { name: 'scope', test: /src\/pages\/scope\/(?:page|words|log\/(?!entry))|src\/api\/socket/ },
  { name: 'scope-tabs', test: pages('scope/') },
  { name: 'spans', test: pages('trace/spans') },
  { name: 'trace', test: pages('trace/(?!report|what-if)') },
  { name: 'scopes', test: pages('scopes/|traces/|incidents/') },
  { name: 'reflexes', test: pages('reflexes/|reflex/(?:page|numbers)|learning/(?:page|curve)') },
  { name: 'skills', test: pages('skills/|skill/(?!activity)') },
  { name: 'decisions', test: pages('reflex/(?:entries|proofs)|decisions/|keys/') },
  { name: 'changes', test: pages('reflex/|trace/|learning/|skill/') },
  { name: 'inboxes', test: pages('approvals/|dead-letters/') },
]

/** `npm run build` runs it. The page and the API have one origin, so no address is configured. */
export default defineConfig({
  root: import.meta.dirname,
  plugins: [reference],
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    target: ['chrome131', 'firefox132', 'safari18'],
    // One small stylesheet, and no list of what to preload: the list would be larger.
    cssCodeSplit: false,
    modulePreload: false,
    // The policy of the page allows no `data:` fonts or scripts.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        codeSplitting: { includeDependenciesRecursively: false, groups: FILES },
      },
    },
  },
  // `npx vite dashboard` serves the sources with hot reload beside a server from `npm run dev`.
  server: {
    proxy: Object.fromEntries(['/v1', '/health', '/metrics'].map((path) => [path, { target: 'http://127.0.0.1:8787', ws: true }])),
  },
})
