import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'

const source = (path: string): string => fileURLToPath(new URL(`../../client/${path}.ts`, import.meta.url))
const page = (name: string): string => fileURLToPath(new URL(`${name}.html`, import.meta.url))

export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  // Only within this repository, which is the package itself. Yours has it in node_modules.
  resolve: {
    alias: {
      'reflex-agents/client': source('index'),
      'reflex-agents/react': source('react/index'),
      'reflex-agents/ai-sdk': source('ai-sdk/index'),
    },
  },
  build: { rolldownOptions: { input: [page('chat'), page('scope'), page('log')] } },
})
