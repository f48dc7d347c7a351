// What goes on in Node while reads of named pipes wait, because no program writes to them.
//
//     node node-pool.js PIPES FOLDER
//
// It makes PIPES named pipes in FOLDER, reads each with fs.readFile, and then asks for an ordinary file and for the address of localhost.
// After a second it prints one line; 1 is yes, 0 is no: timers fired meanwhile, the file was read, the name was looked up.
const { execFileSync } = require("node:child_process");
const dns = require("node:dns");
const fs = require("node:fs");
const path = require("node:path");

const [count, folder] = process.argv.slice(2);
const pipes = Array.from({ length: Number(count) }, (_, n) => path.join(folder, `pipe-${n}`));
const seen = { timers: 0, file: 0, name: 0 };
let over = false;

execFileSync("mkfifo", pipes);
for (const pipe of pipes) fs.readFile(pipe, () => {});
const ticking = setInterval(() => seen.timers++, 10);

fs.readFile(__filename, (err) => {
  if (!over) seen.file = err ? 0 : 1;
});
dns.lookup("localhost", (err) => {
  if (!over) seen.name = err ? 0 : 1;
});

setTimeout(() => {
  over = true;
  clearInterval(ticking);
  console.log("timers\tfile_served\tname_served");
  console.log(`${seen.timers >= 10 ? 1 : 0}\t${seen.file}\t${seen.name}`);
  // A pipe that is opened for reading and writing does not wait, and lets its reader go on: else the program could not end.
  for (const pipe of pipes) fs.closeSync(fs.openSync(pipe, "r+"));
}, 1000);
