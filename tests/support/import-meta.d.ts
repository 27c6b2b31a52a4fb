/** Vite's, as tests use it. */
interface ImportMeta {
  readonly env: Record<string, string | undefined>
  glob<Content>(pattern: string, options: { query: string; import: string; eager: true }): Record<string, Content>
}
