/**
 * FNV-1a of the UTF-16 code units of a text, 32 bits: short and quick, for names and for what only
 * damage changes. `start` is the hash of what stands before the text.
 */
export function fnv1a(text: string, start = 0x811c9dc5): number {
  let hash = start
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193) >>> 0
  return hash
}
