/** The first TypeScript block after a heading of a guide. */
export function guideCode(guide: string, heading: string): string {
  const behind = guide.slice(guide.indexOf(`${heading}\n`))
  const [, code = ''] = /^```ts\n([^]*?)^```$/m.exec(behind) ?? []
  return code
}
