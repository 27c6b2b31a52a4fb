import type { Api } from '../lib/api.ts'
import { readProjectFile } from './project-file.ts'

/** The skills that the guard's model may propose, in addition to its tools. */
export const SKILL_FOLDER = 'examples/skills/'
const FILES = ['incident-open.json', 'network-block.json']

/**
 * Registers the demo's skills and activates them: otherwise the gate would ask for their promotion.
 */
export async function setSkills(api: Api, signal: AbortSignal): Promise<void> {
  for (const file of FILES) {
    const manifest = JSON.parse(await readProjectFile(`${SKILL_FOLDER}${file}`)) as unknown
    const { id } = await api.json<{ id: string }>('/v1/skills', { method: 'POST', body: manifest, signal })
    await api.json<unknown>(`/v1/skills/${id}/state`, { method: 'POST', body: { state: 'active' }, signal })
  }
}
