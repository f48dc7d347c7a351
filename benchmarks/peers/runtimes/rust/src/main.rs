//! The handlers of README.md on tokio, which knows no HTTP: a task for each connection, a thread for each core.
use std::io;
use std::path::PathBuf;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

fn fib(n: u64) -> u64 {
    match n {
        0 | 1 => n,
        _ => fib(n - 1) + fib(n - 2),
    }
}

async fn find(target: &str, folder: PathBuf) -> io::Result<Vec<u8>> {
    let mut words = target.split('/').skip(1);
    let (what, name) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    match what {
        "fib" => Ok(fib(name.parse().unwrap_or(0)).to_string().into_bytes()),
        "file" => tokio::fs::read(folder.join(what).join(name)).await,
        "block" => std::fs::read(folder.join(what).join(name)),
        _ => Ok([vec![b'x'; 99], vec![b'\n']].concat()),
    }
}

async fn serve(mut socket: TcpStream, folder: PathBuf) -> io::Result<()> {
    let mut buf = [0; 1024];
    let mut have = 0;
    while have < buf.len() {
        let n = socket.read(&mut buf[have..]).await?;
        if n == 0 {
            break;
        }
        have += n;
        while let Some(end) = buf[..have].windows(4).position(|w| w == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buf[..end]).into_owned();
            let target = head.split(' ').nth(1).unwrap_or("");
            let (status, body) = match find(target, folder.clone()).await {
                Ok(body) => ("200 OK", body),
                Err(_) => ("404 Not Found", Vec::new()),
            };
            let fields = format!("Content-Type: text/plain\r\nContent-Length: {}", body.len());
            let head = format!("HTTP/1.1 {status}\r\n{fields}\r\n\r\n");
            socket.write_all(&[head.as_bytes(), &body].concat()).await?;
            buf.copy_within(end + 4..have, 0); // what follows is the next request
            have -= end + 4;
        }
    }
    Ok(())
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let listener = TcpListener::bind(format!("127.0.0.1:{}", args[1])).await?;
    loop {
        let (socket, _) = listener.accept().await?;
        tokio::spawn(serve(socket, PathBuf::from(&args[2])));
    }
}
