import { env } from 'cloudflare:workers'

/** Deletes all files of packs in the bucket of tests. */
export async function clearArchive(): Promise<void> {
  const { objects } = await env.TEST_ARCHIVE.list({ prefix: 'packs/' })
  if (objects.length > 0) await env.TEST_ARCHIVE.delete(objects.map(({ key }) => key))
  await env.DB.exec('DELETE FROM archived_days')
}
