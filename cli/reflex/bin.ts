#!/usr/bin/env -S node --disable-warning=ExperimentalWarning
import process from 'node:process'

const args = process.argv.slice(2)
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
const older = major < 22 || (major === 22 && minor < 14)
if (older && args[0] !== 'init') {
  process.stderr.write(
    `reflex needs Node 22.14 or later; this is ${process.version}.\nnpm i -D node@24 brings one for this project alone; then run npm run or npx again.\n`,
  )
  process.exit(1)
}
if (older) {
  const { main } = await import('./older-node.ts')
  process.exitCode = await main(args)
} else {
  // The next run starts faster: it reads what this one has compiled.
  const { enableCompileCache } = await import('node:module')
  enableCompileCache()
  // Imported only now: older versions of Node lack what it imports.
  const { main } = await import('./main.ts')
  process.exitCode = await main(args)
}
