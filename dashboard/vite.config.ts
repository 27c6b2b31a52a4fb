import { defineConfig } from 'vite'

/** `npm run build` runs it. The page and the API have one origin, so no address is configured. */
export default defineConfig({
  root: import.meta.dirname,
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    target: ['chrome131', 'firefox132', 'safari18'],
    // All supported browsers preload modules; the polyfill would be the largest part of the entry.
    modulePreload: { polyfill: false },
    // The policy of the page allows no `data:` fonts or scripts.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
  // `npx vite dashboard` serves the sources with hot reload beside a server from `npm run dev`.
  server: {
    proxy: Object.fromEntries(['/v1', '/health', '/metrics'].map((path) => [path, { target: 'http://127.0.0.1:8787', ws: true }])),
  },
})
