/** SHA-256, in 64 hex digits. Web Crypto, so that it runs anywhere; Workers' code that cannot await uses `node:crypto`. */
export async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
