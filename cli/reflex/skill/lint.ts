import { parseJson } from '../../../src/base/check-json.ts'
import { anything, checkManifest } from '../../../src/skills/check.ts'
import { lintManifest, type Finding } from '../../../src/skills/lint.ts'
import { parseManifest, type Manifest } from '../../../src/skills/manifest/manifest.ts'
import { lineOf } from './json-lines.ts'

type Source = { file: string; text: string }
type FindingInFile = Finding & { file: string; line: number }

/** Errors of manifests and doubts about them, each with its line. */
export async function findingsIn(sources: readonly Source[]): Promise<FindingInFile[]> {
  const read = sources.map((source) => ({ ...source, ...readManifest(source.text) }))
  const manifests = read.flatMap(({ manifest }) => (manifest ? [manifest] : []))
  return read.flatMap(({ file, text, manifest, errors }) => {
    const found = manifest ? [...errors, ...lintManifest(manifest, manifests)] : errors
    return found.map((one) => ({ ...one, file, line: lineOf(text, one.path) }))
  })
}

function readManifest(text: string): { manifest: Manifest | null; errors: Finding[] } {
  const json = parseJson(text)
  if (!json.ok) return { manifest: null, errors: [{ path: '', message: json.message, example: '' }] }
  const parsed = parseManifest(json.value)
  if (!parsed.ok) return { manifest: null, errors: parsed.errors.map((error) => ({ ...error, example: '' })) }
  const { manifest } = parsed
  const checked = checkManifest(manifest, anything(manifest))
  return { manifest, errors: checked.ok ? [] : checked.errors.map((error) => ({ ...error, example: '' })) }
}
