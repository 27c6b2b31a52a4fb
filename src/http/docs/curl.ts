import type { Operation, Parameter } from './operations.ts'

/** Names in a path, as an example would have them. */
const samples: Record<string, string> = { scope: 'default', id: '01a1fd07-7a9e-763b-9352-18e70e5f5083', name: 'daily', ref: 'greet' }

/** A command that calls an operation, with `$URL` for the address and `$KEY` for the key. */
export function curlCommand({ method, path, open, parameters, body, streams }: Operation): string {
  const [type, example] = Object.entries(body?.content ?? {}).map(([type, media]) => [type, media.example] as const)[0] ?? []
  const address = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => samples[name] ?? name)
  const lines = [
    `curl ${streams ? '-N ' : ''}${method === 'get' ? '' : `-X ${method.toUpperCase()} `}"$URL${address}${queryOf(parameters)}"`,
    open ? '' : '-H "Authorization: Bearer $KEY"',
    type === undefined ? '' : `-H "Content-Type: ${type}"`,
    example === undefined ? '' : `-d '${typeof example === 'string' ? example : JSON.stringify(example)}'`,
  ]
  return lines.filter((line) => line !== '').join(' \\\n  ')
}

function queryOf(parameters: readonly Parameter[]): string {
  const given = parameters.filter(({ in: place, example }) => place === 'query' && example !== undefined)
  return given.length === 0 ? '' : `?${given.map(({ name, example }) => `${name}=${String(example)}`).join('&')}`
}
