/** The path of a request with the fields that it names, and the other fields. */
export function addressOf(at: string, fields: Readonly<Record<string, unknown>>): { path: string; rest: [string, unknown][] } {
  const named = new Set<string>()
  const path = at.slice(at.indexOf(' ') + 1).replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    named.add(name)
    return encodeURIComponent(String(fields[name]))
  })
  return { path, rest: Object.entries(fields).filter(([name, value]) => !named.has(name) && value !== undefined) }
}
