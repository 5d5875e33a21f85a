// Questions to the server that served this page, and what went wrong with them.

const PATIENCE = 20_000;

export class Trouble extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** Return the answer to a GET as an object; raises Trouble with one sentence. */
export async function ask(path, parameters = "") {
  const query = String(parameters);
  let response;
  try {
    response = await fetch(query ? `${path}?${query}` : path, {
      cache: "no-store",
      credentials: "same-origin",
      redirect: "error",
      signal: AbortSignal.timeout(PATIENCE),
    });
  } catch {
    throw new Trouble("The server of this page does not answer.", 0);
  }
  let answer = null;
  try {
    answer = await response.json();
  } catch {
    throw new Trouble(`The server answered ${path} with status ${response.status} and no data.`, response.status);
  }
  if (!response.ok) {
    throw new Trouble(answer?.error ?? `The server answered ${path} with status ${response.status}.`, response.status);
  }
  return answer;
}
