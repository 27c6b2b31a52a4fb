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

/** The modules that neither the shell nor the overview needs. */
const LATER = /src\/pages\/(?!overview\/)|src\/ui\/(?:dialog|form|json|status|table|use-keys)|\/client\/|partysocket|uuid/

/** `npm run build` runs it. The page and the API have one origin, so no address is configured. */
export default defineConfig({
  root: import.meta.dirname,
  plugins: [reference],
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    target: ['chrome131', 'firefox132', 'safari18'],
    // All supported browsers preload modules; the polyfill would be the largest part of the entry.
    modulePreload: { polyfill: false },
    // The policy of the page allows no `data:` fonts or scripts.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        // The first load is the shell and the overview. The other pages share parts and words: they
        // are a quarter smaller in one file than in one each.
        codeSplitting: {
          includeDependenciesRecursively: false,
          groups: [{ name: 'pages', test: LATER }],
        },
      },
    },
  },
  // `npx vite dashboard` serves the sources with hot reload beside a server from `npm run dev`.
  server: {
    proxy: Object.fromEntries(['/v1', '/health', '/metrics'].map((path) => [path, { target: 'http://127.0.0.1:8787', ws: true }])),
  },
})
