import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { defineConfig, type Plugin } from 'vite'
import { documentation } from './documentation/render.ts'

/** About this code, for those who change it, who have the repository. */
const OF_REPOSITORY = new Set(['walk.md', 'mutation.md'])

/** The other pages of docs/ as HTML, at `/docs`. */
const pagesOfDocs: Plugin = {
  name: 'documentation',
  apply: 'build',
  async generateBundle() {
    const folder = path.join(import.meta.dirname, '../docs')
    const names = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.md') && !OF_REPOSITORY.has(name)).toSorted()
    const sources = new Map(await Promise.all(names.map(async (name) => [name, await readFile(path.join(folder, name), 'utf8')] as const)))
    const readme = await readFile(path.join(folder, '../README.md'), 'utf8')
    const styles = ['src/css/base.css', 'documentation/style.css'].map((name) => readFile(path.join(import.meta.dirname, name), 'utf8'))
    this.emitFile({ type: 'asset', fileName: 'docs/style.css', source: (await Promise.all(styles)).join('') })
    for (const [name, source] of documentation(readme, sources)) this.emitFile({ type: 'asset', fileName: `docs/${name}`, source })
  },
}

/** Pages need no helper that loads their styles first: there is one stylesheet. */
const plainImports: Plugin = {
  name: 'plain-imports',
  apply: 'build',
  enforce: 'pre',
  load: (id) => (id.endsWith('vite/preload-helper.js') ? 'export const __vitePreload = (load) => load()' : null),
}

/** `npm run build` runs it. The page and the API have one origin, so no address is configured. */
export default defineConfig({
  root: import.meta.dirname,
  plugins: [pagesOfDocs, plainImports],
  // Calls of `h` are smaller than calls of the automatic runtime, which names each `children`.
  oxc: { jsx: { runtime: 'classic', pragma: 'h', pragmaFrag: 'Fragment' }, jsxInject: "import { Fragment, h } from 'preact'" },
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    target: ['chrome131', 'firefox132', 'safari18'],
    // The page has one small stylesheet, and no list of what to preload: the list would be larger.
    cssCodeSplit: false,
    modulePreload: false,
    // The policy of the page allows no `data:` fonts or scripts.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            // The shell has what the overview needs; the parts have what the other pages share.
            {
              name: 'shell',
              test: /node_modules|src\/(?:api|app|css|pages\.ts|layout|main|pages\/overview|ui\/(?:feedback|links|n|page|sparkline|tabs|text|time))|contract\/address|base\/amounts/,
            },
            { name: 'parts', test: /src\/ui\/(?!list-page)|src\/pages\/trace\/(?:report|spans|waterfall)/ },
          ],
        },
      },
    },
  },
  // `npx vite dashboard` serves the sources with hot reload beside a server from `npm run dev`.
  server: {
    proxy: Object.fromEntries(['/v1', '/health', '/metrics'].map((path) => [path, { target: 'http://127.0.0.1:8787', ws: true }])),
  },
})
