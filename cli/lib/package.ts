import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The folder of this package: the repository, or the installed package in a project. */
export const packageFolder = folderOfPackage(import.meta.dirname)
export const { version } = JSON.parse(readFileSync(join(packageFolder, 'package.json'), 'utf8')) as { version: string }

/** The nearest folder with a package.json, upwards. Node 20 has no function for it. */
function folderOfPackage(folder: string): string {
  if (existsSync(join(folder, 'package.json'))) return folder
  if (folder === dirname(folder)) throw new Error('the package.json of reflex-agents is missing')
  return folderOfPackage(dirname(folder))
}
