/**
 * Returns the deployed URL from the JSON lines that wrangler wrote to WRANGLER_OUTPUT_FILE_PATH, or
 * null.
 */
export function deployedUrl(output: string): string | null {
  const targets = output
    .split('\n')
    .filter((line) => line.trim() !== '')
    .flatMap((line) => {
      const entry: { type?: string; targets?: string[] } = JSON.parse(line)
      return entry.type === 'deploy' ? (entry.targets ?? []) : []
    })
  const url = targets.find((target) => target.includes('.') && !target.includes(' '))
  return url === undefined ? null : url.startsWith('http') ? url : `https://${url}`
}
