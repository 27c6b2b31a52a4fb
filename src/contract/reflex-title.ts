/** Stands in the description of a learned reflex, after its title. */
export const LEARNED_BY = '. Learned by '

/** The title of a learned reflex, which begins its description; of any other one, its id. */
export function reflexTitle({ id, description }: { id: string; description: string }): string {
  const end = id.startsWith('learned.') ? description.indexOf(LEARNED_BY) : -1
  return end > 0 ? description.slice(0, end) : id
}
