import { flawsText } from '../../base/error-text.ts'
import { hashJson } from '../../base/json.ts'
import type { FeedItem } from './contract/skill-feed.ts'
import { anything, checkManifest } from '../../skills/check.ts'
import { parseManifest, type Manifest } from '../../skills/manifest/manifest.ts'

type Read = { ok: true; manifest: Manifest } | { ok: false; problem: string }

/** The manifest of an item, which anything may have changed on its way. */
export async function manifestOf({ id, version, hash, manifest: json }: FeedItem): Promise<Read> {
  const refused = (problem: string): Read => ({ ok: false, problem })
  if ((await hashJson(json)) !== hash) return refused('the hash is not that of the manifest')
  const parsed = parseManifest(json)
  if (!parsed.ok) return refused(`the manifest is not valid: ${flawsText(parsed.errors)}`)
  const { manifest } = parsed
  if (manifest.id !== id || manifest.version !== version) return refused('the manifest has another id or version')
  const checked = checkManifest(manifest, anything(manifest))
  if (checked.ok) return { ok: true, manifest }
  return refused(`the manifest is not valid: ${flawsText(checked.errors)}`)
}
