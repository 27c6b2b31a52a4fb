import type { Signer } from './keys.ts'

const SEAL = /^(\{.+),"seal":\{"key":"([\da-f]{16})","signature":"([\da-f]{128})"\}\}\n?$/s

/** A file as JSON whose last field signs all bytes before it: also those that no entry proves. */
export async function sealed(content: object, { key, sign }: Signer): Promise<string> {
  const body = JSON.stringify(content).slice(0, -1)
  return `${body},"seal":{"key":"${key}","signature":"${await sign(sealText(body))}"}}`
}

const sealText = (body: string): string => `reflex-receipt/1\n${body}`

/** The text that a seal signs; null if the file does not end with a seal. */
export function sealOf(text: string): { signed: string; key: string; signature: string } | null {
  const [, body = '', key = '', signature = ''] = SEAL.exec(text) ?? []
  return key === '' ? null : { signed: sealText(body), key, signature }
}
